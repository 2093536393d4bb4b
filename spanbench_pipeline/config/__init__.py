"""What people write down, as typed objects: experiments, operations, where things lie."""
