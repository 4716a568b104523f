//go:build unix

package content_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lashd/pluginloader/content"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

const putVariable = "CONTENT_TEST_PUT"

// putForEver puts plugins into a store, the first of the directories, and removes them, until it is killed.
func putForEver(dirs []string) {
	for i := 0; ; i++ {
		s, err := content.NewStore(dirs[0], manifest.Finder{Look: nowhere})
		if err == nil {
			var c content.Copy
			if c, err = s.Put(context.Background(), dirs[1+i%(len(dirs)-1)]); err == nil {
				c.Close()
				if i%5 == 0 {
					err = s.Keep(keep())
				}
			}
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		if i == 0 {
			fmt.Println("at work")
		}
	}
}

func TestWhateverMomentItIsKilledNoWrongCopyIsOpened(t *testing.T) {
	t.Run("reliability/T6 killed at any moment", func(t *testing.T) {
		rounds := 20
		if os.Getenv("LASHD_LONG") != "" {
			rounds = 500
		}
		home := filepath.Join(t.TempDir(), "plugins")
		dirs := []string{home}
		for i := range 3 {
			f := files{"plugin.json": named}
			for n := range 10 {
				f[fmt.Sprintf("%d/%d", n%3, n)] = strings.Repeat(fmt.Sprint(i), 10_000*n)
			}
			dirs = append(dirs, f.in(t, filepath.Join(t.TempDir(), "p")))
		}
		known := map[protocol.Digest]map[string]string{}
		for _, dir := range dirs[1:] {
			s, _ := store(t)
			c := put(t, s, dir)
			known[c.Digest] = tree(t, c.Root)
		}
		for range rounds {
			killed(t, strings.Join(dirs, ":"))
			s := reopen(t, home)
			for _, name := range entries(t, home) {
				c, err := s.Open(t.Context(), protocol.Digest(name))
				if err != nil {
					t.Fatal(err)
				}
				if want := known[c.Digest]; want == nil || fmt.Sprint(want) != fmt.Sprint(tree(t, c.Root)) {
					t.Fatalf("%s is no copy of what was put", name)
				}
			}
		}
	})
}

// killed runs putForEver for some moments.
func killed(t *testing.T, dirs string) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), putVariable+"="+dirs)
	out, err := c.StdoutPipe()
	check(t, err, c.Start())
	if _, err := fmt.Fscanln(out, new(string), new(string)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Duration(rand.IntN(30_000)) * time.Microsecond)
	check(t, c.Process.Kill())
	if err := c.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Fatalf("it ended by itself: %v", err)
	}
}
