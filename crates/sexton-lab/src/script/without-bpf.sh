# perl ./without-bpf PROGRAM ARGS...: runs it with a filter that answers bpf() with EPERM. Numbers
# of system calls are those of the machine; all others are of linux/filter.h and seccomp.h.
case $(uname -m) in
    x86_64) prctl=157 bpf=321 ;;
    aarch64) prctl=167 bpf=280 ;;
    *) echo "no numbers of system calls for $(uname -m)" >&2; exit 9 ;;
esac
cat > without-bpf <<END_OF_REFUSAL
my (\$set_seccomp, \$filter_mode) = (22, 2);
my \$filter = pack('SCCL' x 4,
    0x20, 0, 0, 0,          # load the number of the call
    0x15, 0, 1, $bpf,       # is it bpf()?
    0x06, 0, 0, 0x50001,    # then EPERM
    0x06, 0, 0, 0x7fff0000, # else go on
);
my \$program = pack('S x6 P', 4, \$filter);
syscall($prctl, \$set_seccomp, \$filter_mode, \$program) == 0 or die "cannot refuse bpf(): \$!";
exec @ARGV or die "\$ARGV[0]: \$!";
END_OF_REFUSAL
