package manifest_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"lashd/pluginloader/manifest"
)

// FuzzManifest reads anything as each of the files that a plugin may have: nothing panics, each problem has a place that
// exists, and a printed file is read again with the same contents.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(reviewer))
	for _, c := range wrong {
		if len(c.in) < 4<<10 {
			f.Add([]byte(c.in))
		}
	}
	for _, text := range formatter {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, problems := manifest.Parse("f", data)
		places(t, data, problems)
		_, problems = manifest.ParseHooks("f", data)
		places(t, data, problems)
		_, problems = manifest.ParseServers("f", data)
		places(t, data, problems)
		if file == nil {
			return
		}
		printed, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		again, problems := manifest.Parse("f", printed)
		if again == nil {
			t.Fatalf("%s is printed as %s: %v", data, printed, problems)
		}
		reprinted, err := json.Marshal(again)
		if err != nil || !bytes.Equal(printed, reprinted) {
			t.Fatalf("%v: %s", err, cmp.Diff(string(printed), string(reprinted)))
		}
	})
}

// places checks that each problem is at a character of the file, or right behind the last one.
func places(t *testing.T, data []byte, problems manifest.Problems) {
	lines := strings.Split(string(data), "\n")
	for _, p := range problems {
		if p.Line < 1 || p.Line > len(lines) || p.Column < 1 || p.Column > utf8.RuneCountInString(lines[p.Line-1])+1 || p.Message == "" {
			t.Fatalf("%q has no place for %+v", data, p)
		}
	}
}
