"""What others published and what our recipes reach beside it: rows, their recorded runs, the check, the run anew."""
