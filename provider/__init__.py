"""How each resource is made, changed and checked: the plugin process `pulumi-resource-sluicegate`."""
