"""`moorage config`: checks and shows policies, and prints what kube-scheduler needs for them."""
