package authority_test

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv("LASHD_LONG") != "" {
		flag.Set("rapid.checks", "50000") // of a registered flag, with a number
	}
	os.Exit(m.Run())
}
