//! Whole images, of whatever format their first bytes say.

use sexton_image::fuzz;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    name: "image",
    run: fuzz::image,
};
