# SPDX-License-Identifier: GPL-2.0-or-later
#
# saina.ko as people build and install it; Kbuild has what kbuild needs.  KDIR names
# the headers of another kernel than the running one.

KDIR	?= /lib/modules/$(shell uname -r)/build
KSRC	:= $(filter-out kmod/bpf/%,$(wildcard kmod/*.[ch] kmod/*/*.[ch] kmod/*/*/*.[ch])) $(wildcard uapi/*/*.h)
DKMSDIR	= $(DESTDIR)/usr/src/saina-$(VERSION)

# Built in a copy, so that the tree stays as it is.
module: $(B)/saina.ko
$(B)/saina.ko: Kbuild $(KSRC)
	@[ -e "$(KDIR)" ] || { echo "$(KDIR) does not exist: apt install linux-headers-$(shell uname -r), or name other headers: KDIR=..." >&2; exit 1; }
	@mkdir -p $(B)/module/here
	cp -u --parents -t $(B)/module/here Kbuild $(KSRC)
	+$(MAKE) -C $(KDIR) M=$(abspath $(B)/module/here) modules
	cp $(B)/module/here/saina.ko $@

install-module: $(B)/saina.ko
	install -D -m 644 $< $(DESTDIR)/lib/modules/$(shell uname -r)/updates/saina.ko
	$(if $(DESTDIR),,depmod -a)

# The sources where DKMS looks for them; `dkms install saina/VERSION' does the rest.
install-dkms:
	for f in Kbuild $(KSRC); do install -D -m 644 $$f $(DKMSDIR)/$$f || exit 1; done
	sed 's/@VERSION@/$(VERSION)/' kmod/dkms.conf.in >$(DKMSDIR)/dkms.conf

.PHONY: module install-module install-dkms
