package rulebook_test

import (
	"flag"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	checks := "200"
	if os.Getenv("LASHD_LONG") != "" {
		checks = "20000"
	}
	flag.Set("rapid.checks", checks) // cannot fail: the flag is registered
	os.Exit(m.Run())
}
