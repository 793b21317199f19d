"""Web frameworks: each adapter fits an App into the life of one framework, and only it imports that framework."""
