"""Making long sequences out of shorter documents: along their links, by best fit, by similarity.
Pure: values in, values out.
"""
