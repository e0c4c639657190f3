"""What a stack contains: four components and the one that knows their order."""
