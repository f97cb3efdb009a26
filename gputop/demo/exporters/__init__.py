"""What the simulated exporters write."""
