"""Where machines and disks come from. One adapter a file; no Pulumi."""
