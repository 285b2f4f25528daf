"""The command `moorage capacity`: it asks an autoscaler for nodes that cure a rule's rejections."""
