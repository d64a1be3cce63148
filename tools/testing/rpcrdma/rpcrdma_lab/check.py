"""x"""
MODULE="inbox"
