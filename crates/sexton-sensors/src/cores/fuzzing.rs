//! For the fuzz targets.

/// Numbers of the cores in what `/proc/stat` might say.
pub fn proc_stat(stat: &[u8]) -> Vec<u32> {
    let lines = super::stat::cores(stat).flatten();
    lines.map(|(number, _)| number).collect()
}
