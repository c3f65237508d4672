"""What starts runs by itself, when a person has asked for that: the planner's condition, the
upstream's sensor, the nightly schedule.
"""
