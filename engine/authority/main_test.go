package authority_test

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv("LASHD_LONG") != "" {
		flag.Set("rapid.checks", "50000") // cannot fail: the flag is registered
	}
	os.Exit(m.Run())
}
