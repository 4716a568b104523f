package netproxy

import (
	"net/netip"
	"testing"
)

func TestSpecial(t *testing.T) {
	own := func() []netip.Addr {
		return []netip.Addr{netip.MustParseAddr("8.8.4.4"), netip.MustParseAddr("2a00::7")}
	}
	for ip, want := range map[string]string{
		"8.8.8.8": "", "1.1.1.1": "", "2606:4700::1111": "", "172.32.0.1": "", "100.128.0.1": "", "64:ff9b::8.8.8.8": "", "2002:808:808::1": "",
		"127.0.0.1": thisMachine, "127.9.9.9": thisMachine, "0.0.0.0": thisMachine, "0.1.2.3": thisMachine, "::1": thisMachine, "::": thisMachine,
		"::ffff:127.0.0.1": thisMachine, "::127.0.0.1": thisMachine, "64:ff9b::127.0.0.1": thisMachine, "2002:7f00:1::": thisMachine,
		"8.8.4.4": thisMachine, "2a00::7": thisMachine, "64:ff9b::8.8.4.4": thisMachine,
		"10.0.0.1": privateNetwork, "172.16.0.1": privateNetwork, "172.31.255.255": privateNetwork, "192.168.1.1": privateNetwork, "fd00:ec2::254": privateNetwork,
		"fc00::1": privateNetwork, "100.100.100.200": privateNetwork, "198.18.0.1": privateNetwork, "fec0::1": privateNetwork, "64:ff9b::10.0.0.1": privateNetwork,
		"64:ff9b:1::1": privateNetwork, "2002:a00:1::1": privateNetwork, "::ffff:192.168.0.1": privateNetwork,
		"169.254.169.254": linkLocal, "fe80::1": linkLocal, "::ffff:169.254.169.254": linkLocal, "2002:a9fe:a9fe::": linkLocal,
		"168.63.129.16": cloudService, "192.0.0.192": cloudService,
		"224.0.0.1": group, "ff02::1": group, "255.255.255.255": reserved, "240.0.0.1": reserved, "192.0.2.1": reserved, "2001:db8::1": reserved, "2001::1": reserved, "100::1": reserved,
	} {
		if got := special(netip.MustParseAddr(ip), own); got != want {
			t.Errorf("%s is %q, want %q", ip, got, want)
		}
	}
	if all := ownAddresses(); len(all) == 0 {
		t.Error("this machine has no addresses")
	}
}
