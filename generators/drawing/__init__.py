"""The house style of pictures, their interactive forms, labels of tokens."""
