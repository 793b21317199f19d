"""What must hold, checked against records of its own after every transaction of the store; numbers (I1, I7 ...) name the promises."""
