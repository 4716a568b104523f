package frame

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

func FuzzFrameReader(f *testing.F) {
	for _, cases := range [][]scene{framingCases, jsonCases, envelopeCases, batchCases} {
		for _, c := range cases {
			if len(c.in) < 10_000 {
				f.Add([]byte(c.in))
			}
		}
	}
	cfg := Config{MaxFrame: 1 << 20, MaxInFlight: 8}
	f.Fuzz(func(t *testing.T, in []byte) {
		whole := replay(t, bytes.NewReader(in), cfg)
		if bytewise := replay(t, iotest.OneByteReader(bytes.NewReader(in)), cfg); bytewise != whole {
			t.Errorf("%q:\n%s at once\n%s byte by byte", in, whole, bytewise)
		}
	})
}

// A large Content-Length without data costs little memory.
func TestMemoryGrowsWithReceivedData(t *testing.T) {
	in := "Content-Length: 8388608\r\n\r\n" + strings.Repeat("x", 100_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if got := replay(t, strings.NewReader(in), Config{}); got != "cut" {
		t.Fatalf("got %s, want cut", got)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes allocated for 100 kB of a body said to be 8 MiB", got)
	}
}
