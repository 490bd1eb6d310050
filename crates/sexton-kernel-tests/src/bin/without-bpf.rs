//! Runs a program that the kernel refuses BPF: `without-bpf PROGRAM ARGS...`, as root.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context, Result};
use sexton_kernel_tests::without_bpf;

fn main() -> Result<()> {
    let mut args = std::env::args_os().skip(1);
    let program = args.next().context("usage: without-bpf PROGRAM ARGS...")?;
    without_bpf::refuse_here().context("cannot refuse it: run as root")?;
    let error = Command::new(&program).args(args).exec();
    Err(error).with_context(|| format!("cannot run {}", program.display()))
}
