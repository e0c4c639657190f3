"""What is served: recipes (wishes), locks (exact bits), command lines compiled from them. No Pulumi, no cloud."""
