"""What is served: recipes (wishes), locks (exact bits) and the command lines compiled from them. No Pulumi, no cloud."""
