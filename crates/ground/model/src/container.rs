//! Programs that run containers, by name.

/// podman, with images of registries.
pub const PODMAN: &[&str] = &["podman"];
/// apptainer under both its names, with images that are files.
pub const APPTAINER: &[&str] = &["apptainer", "singularity"];
