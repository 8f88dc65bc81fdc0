"""A PLAN BEFORE THE MONEY IS SPENT: what a training step of a recipe takes on devices that need not be there.

Everything is computed from shapes: no weight is drawn, and no text is read.

    plan        the whole of it
    subject     what is trained: a recipe or a preset, its model, its batch, its step, as shapes
    estimate    memory and traffic of a device, from shapes and the table of the mesh
    operations  floating-point operations of a step, counted in what JAX traced
    place       how many devices, and which to compile for
    compiled    the step compiled for devices that are not there, and what XLA says of it
    hlo         the collectives of a compiled program
    chips       what chips can do, each with its source
    roofline    how long a step takes at least, and what binds it
    meshes      all meshes of so many devices, ranked
    measure     the same on this machine, run
    report      a plan as lines of text and as JSON
    picture     which parameter lives where, drawn
    words       figures in words
"""
