"""Fills an image through the kernel, and lists what the kernel reads from it.

make.py IMAGE LIST SIZE ENTRIES [OPTIONS OF mkfs.xfs...]
make.py IMAGE LIST SIZE ENTRIES btrfs OPTIONS-OF-MOUNT [OPTIONS OF mkfs.btrfs...]
"""

import hashlib
import os
import stat
import subprocess
import sys
import tempfile

image, listing, size, entries, *options = sys.argv[1:]
entries = int(entries)
is_btrfs = options[:1] == ["btrfs"]


def fill(root):
    at = lambda *parts: os.path.join(root, *parts)

    def write(path, text):
        with open(at(path), "w") as file:
            file.write(text)

    os.makedirs(at("etc/systemd/system/multi-user.target.wants"))
    os.makedirs(at("usr/lib/systemd/system"))
    os.makedirs(at("usr/bin"))
    write("etc/os-release", "ID=amzn\n")
    write("usr/lib/systemd/system/ecs.service", "[Service]\nExecStart=/usr/bin/ecs\n")
    write("usr/lib/systemd/system/empty.service", "")
    os.symlink("usr/lib", at("lib"))
    wants = "etc/systemd/system/multi-user.target.wants/ecs.service"
    os.symlink("/lib/systemd/system/ecs.service", at(wants))
    os.symlink("x" * 1023, at("etc/long-link"))
    os.symlink("y/" * 250, at("etc/middle-link"))
    os.symlink("z" * 300, at("etc/300-link"))
    os.mkfifo(at("etc/pipe"))
    write("etc/new\nline\x1b", "x")
    write(os.fsdecode(b"etc/\xff\xfe"), "x")
    os.setxattr(at("etc/os-release"), "user.note", b"n" * 100)
    os.setxattr(at("usr/lib/systemd/system/ecs.service"), "user.note", b"n" * 1000)
    os.link(at("etc/os-release"), at("usr/lib/os-release"))
    write("etc/one", "1")
    write_pieces(at)
    fill_folders(at)


def write_pieces(at):
    """Files with holes, with blocks that are reserved only, and in many pieces."""
    with open(at("usr/bin/sparse"), "wb") as file:
        for place in range(0, 900_000, 70_001):
            file.seek(place)
            file.write(b"data%d" % place)
        file.truncate(1_000_000)
        os.posix_fallocate(file.fileno(), 400_000, 100_000)
    with open(at("usr/bin/reserved"), "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 65_536)
        file.seek(5_000)
        file.write(b"in the middle")
    with open(at("usr/bin/frag"), "wb") as file:
        for number in range(1_000_000 // 8192):
            file.seek(number * 8192)
            file.write(bytes([number % 251]) * 4096)
            file.flush()
            if number % 7 == 0:
                os.fsync(file.fileno())
    os.chmod(at("usr/bin/frag"), 0o4755)


def fill_folders(at):
    """Directories of each form, of hard links; two of them grow in turns and shrink again."""
    for count, name in ((3, "short"), (30, "block"), (300, "leaf"), (entries, "node")):
        os.mkdir(at("usr", name))
        for number in range(count):
            long = "-long" * (number % 40) if number % 97 == 0 else ""
            os.link(at("etc/one"), at("usr", name, f"name-{number:06}{long}"))
    os.mkdir(at("usr/odd"))
    os.mkdir(at("usr/even"))
    place = lambda n: at("usr", "odd" if n % 2 else "even", f"interleaved-{n:06}")
    for number in range(entries):
        os.link(at("etc/one"), place(number))
    for number in range(0, entries, 3):
        os.unlink(place(number))
    os.mkdir(at("usr/255"))
    with open(at("usr/255", "n" * 255), "w") as file:
        file.write("long")
    deep = at("deep", *(f"d{number}" for number in range(40)))
    os.makedirs(deep)
    with open(os.path.join(deep, "end"), "w") as file:
        file.write("end")


def fill_btrfs(root):
    """The root and /home in subvolumes, one more inside, a snapshot, and text that packs well."""
    for name in ("@", "@home"):
        subprocess.check_call(["btrfs", "-q", "subvolume", "create", os.path.join(root, name)])
    system = os.path.join(root, "@")
    fill(system)
    with open(os.path.join(system, "usr/bin/text"), "w") as file:
        for number in range(7_000):
            file.write(f"line {number * number} of {number}\n")
    with open(os.path.join(system, "usr/bin/noise"), "wb") as file:
        file.write(b"".join(hashlib.sha256(bytes([n])).digest() for n in range(256)))
    with open(os.path.join(system, "etc/fstab"), "w") as file:
        file.write("LABEL=made / btrfs subvol=@ 0 0\nLABEL=made /home btrfs subvol=/@home 0 0\n")
    os.mkdir(os.path.join(system, "home"))
    with open(os.path.join(root, "@home", "file"), "w") as file:
        file.write("at home\n")
    inner = os.path.join(system, "usr", "inner")
    subprocess.check_call(["btrfs", "-q", "subvolume", "create", inner])
    with open(os.path.join(inner, "file"), "w") as file:
        file.write("inside\n")
    snapshot = os.path.join(system, "snapshot")
    subprocess.check_call(["btrfs", "-q", "subvolume", "snapshot", "-r", system, snapshot])


def escape(path):
    plain = lambda byte: 32 <= byte < 127 and byte != 92
    return "".join(chr(byte) if plain(byte) else f"\\x{byte:02x}" for byte in path)


def lines(root):
    root = os.fsencode(root)
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                shown = "-> " + os.fsdecode(os.readlink(path))
            elif stat.S_ISDIR(mode):
                shown = "dir"
            elif stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    content = file.read()
                total = sum(n * byte for n, byte in enumerate(content, 1) if byte)
                shown = f"{mode & 0o7777:o} {len(content)} {total}"
            else:
                shown = "other"
            yield f"{escape(path[len(root):])}\t{shown}\n"


with open(image, "wb") as file:
    pass
subprocess.check_call(["truncate", "-s", size, image])
mounted = tempfile.mkdtemp()
if is_btrfs:
    subprocess.check_call(["mkfs.btrfs", "-q", "-f", "-L", "made", *options[2:], image])
    mount = ["mount", "-o", "loop,noatime," + options[1]]
else:
    subprocess.check_call(["mkfs.xfs", "-q", "-f", "--unsupported", *options, image])
    mount = ["mount", "-o", "loop,noatime"]
subprocess.check_call([*mount, image, mounted])
try:
    if is_btrfs:
        fill_btrfs(mounted)
        subprocess.check_call(["umount", mounted])
        # As a boot would, and anew, so that all is read from the disk.
        subprocess.check_call([*mount, "-o", "subvol=@,ro", image, mounted])
        home = os.path.join(mounted, "home")
        subprocess.check_call([*mount, "-o", "subvol=@home,ro", image, home])
    else:
        fill(mounted)
        os.sync()
    with open(listing, "w") as file:
        file.writelines(sorted(lines(mounted)))
finally:
    subprocess.check_call(["umount", "-R", mounted])
    os.rmdir(mounted)
