package hostrule_test

import (
	"strings"
	"testing"

	"lashd/engine/hostrule"
)

func parse(t *testing.T, text string) hostrule.Pattern {
	t.Helper()
	p, err := hostrule.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"Registry.NPMJS.org": "registry.npmjs.org", "example.com.": "example.com", "*.GitHub.com:8443": "*.github.com:8443", "*": "*", "*:22": "*:22",
		"127.0.0.1:8080": "127.0.0.1:8080", "::1": "::1", "[::1]": "::1", "[::1]:80": "[::1]:80", "::ffff:10.0.0.1": "10.0.0.1",
		"xn--bcher-kva.example": "xn--bcher-kva.example", "localhost": "localhost", "a_b.example": "a_b.example",
	} {
		if got := parse(t, text).String(); got != want {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"": "the name is missing", "https://example.com": `without "https://"`, "example.com/x": "write only the host", "user@example.com": "write only the host",
		"bücher.example": "begins with xn--", "gіthub.com": "begins with xn--", "a.*.com": `"*" can only`, "**.com": `"*" can only`, "example.com:0": "from 1 to 65535",
		"example.com:65536": "from 1 to 65535", "example.com:+80": "from 1 to 65535", "example.com:": "from 1 to 65535", "[::1": "bracket is not closed", "[::1]80": "from 1 to 65535",
		"[1.2.3.4]": "only an IPv6 address", "fe80::1%eth0": "network interface", "0x7f.1": "neither a name", "127.1": "neither a name", "2130706433": "neither a name",
		"0x7f000001": "neither a name", "a..b": "not the name of a host", ".example.com": "not the name of a host", "a,b": "not the name of a host", "example.com..": "not the name of a host",
		"*.": `"*" can only`, strings.Repeat("a", 64): "not the name of a host", strings.Repeat("a.", 130) + "b": "longer than 253", "example.com\x00": "not the name of a host",
	} {
		if p, err := hostrule.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %q with error %v, want one with %q", text, p, err, want)
		}
	}
}

func TestAllows(t *testing.T) {
	for _, c := range []struct {
		pattern, host string
		want          bool
	}{
		{"example.com", "example.com:443", true},
		{"example.com", "EXAMPLE.com.:80", true},
		{"example.com", "example.com:8443", false},
		{"example.com:8443", "example.com:8443", true},
		{"example.com:8443", "example.com:443", false},
		{"example.com", "www.example.com:443", false},
		{"example.com", "notexample.com:443", false},
		{"example.com", "example.com.evil.test:443", false},
		{"*.example.com", "www.example.com:443", true},
		{"*.example.com", "a.b.example.com:443", true},
		{"*.example.com", "example.com:443", false},
		{"*.example.com", "evilexample.com:443", false},
		{"*", "example.com:443", true},
		{"*", "example.com:22", false},
		{"*", "169.254.169.254:80", false},
		{"*:22", "example.com:22", true},
		{"127.0.0.1:8080", "127.0.0.1:8080", true},
		{"127.0.0.1", "127.0.0.2:80", false},
		{"127.0.0.1", "[::ffff:127.0.0.1]:80", true},
		{"[::1]:8080", "[0:0::1]:8080", true},
	} {
		h, err := hostrule.Host(c.host, 80)
		if err != nil {
			t.Fatal(err)
		}
		if got := parse(t, c.pattern).Allows(h); got != c.want {
			t.Errorf("%s allows %s: %t, want %t", c.pattern, c.host, got, c.want)
		}
	}
	if _, err := hostrule.Host("*.example.com", 80); err == nil {
		t.Error("a pattern is accepted as the target of a request")
	}
}

func TestComparePatterns(t *testing.T) {
	for _, c := range []struct {
		p, q                         string
		allows, concerns, concernAll bool
	}{
		{"example.com", "example.com", true, true, true},
		{"example.com", "example.com:443", true, true, true},
		{"example.com", "example.com:22", false, true, true},
		{"example.com:443", "example.com", false, true, false},
		{"example.com:22", "example.com", false, false, false},
		{"*.example.com", "www.example.com", true, true, true},
		{"*.example.com", "*.www.example.com", true, true, true},
		{"*.example.com", "*.example.com", true, true, true},
		{"www.example.com", "*.example.com", false, true, false},
		{"*.www.example.com", "*.example.com", false, true, false},
		{"*.a.example", "*.b.example", false, false, false},
		{"example.com", "*.example.com", false, false, false},
		{"*", "*", true, true, true},
		{"*", "10.0.0.1", false, true, true},
		{"10.0.0.1", "*", false, true, false},
		{"10.0.0.1", "10.0.0.1:443", true, true, true},
		{"*.example.com", "*", false, true, false},
	} {
		p, q := parse(t, c.p), parse(t, c.q)
		if p.AllowsAll(q) != c.allows || p.Concerns(q) != c.concerns || p.ConcernsAll(q) != c.concernAll {
			t.Errorf("%s to %s: allows %t, concerns some %t, all %t; want %t, %t, %t", p, q, p.AllowsAll(q), p.Concerns(q), p.ConcernsAll(q), c.allows, c.concerns, c.concernAll)
		}
	}
}

// FuzzParse checks that the text of a pattern is read as the same pattern, and that allowing more never follows from parsing again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"example.com", "*.example.com:80", "[::1]:80", "*", "1.2.3.4", "::ffff:1.2.3.4", "a.b.", "[::]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := hostrule.Parse(text)
		if err != nil {
			return
		}
		if again, err := hostrule.Parse(p.String()); err != nil || again != p {
			t.Errorf("%q is read as %q, and that as %q with error %v", text, p, again, err)
		}
		if !p.AllowsAll(p) || !p.ConcernsAll(p) || !p.Concerns(p) {
			t.Errorf("%q does not match itself", text)
		}
	})
}
