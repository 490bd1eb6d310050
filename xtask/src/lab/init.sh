# The first process of a guest of the lab, before it becomes systemd.
mount -t proc proc /proc
echo sexton-lab > /proc/sys/kernel/hostname
# Units that come with the job; what is in /etc is the administrator's own.
cp -a /job/units/. /etc/systemd/system/
# Nobody sits at a terminal, and without udev they would be waited for.
ln -sf /dev/null /etc/systemd/system/getty.target
for module in /job/modules/*; do /sbin/insmod "$module"; done
umount /proc
exec /lib/systemd/systemd
