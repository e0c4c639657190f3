"""What runs on the machine: a program of its own, standard library only."""
