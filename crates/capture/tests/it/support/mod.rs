//! What the tests share with the fuzz targets.

pub mod robust;
