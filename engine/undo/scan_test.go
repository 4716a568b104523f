package undo

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/filepoint"
	"lashd/rpc/protocol"
)

func TestFilesOfOneTick(t *testing.T) {
	t.Run("issue/6-2 a file from the clock tick of a scan is new only if that scan did not ignore it", func(t *testing.T) {
		dir := t.TempDir()
		w := &workspace{root: dir, known: filepoint.NewIndex(nil)}
		files, err := filepoint.Open(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		scan := func() filepoint.Sight {
			sight, err := files.Walk(t.Context(), w.known, 10, false)
			if err != nil {
				t.Fatal(err)
			}
			return sight
		}
		write := func(name, text string) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(".gitignore", "secret.env\n")
		write("secret.env", "precious\n")
		for _, f := range scan().News {
			w.known.Put(f)
		}
		w.known.Accept()
		write("new.txt", "new\n")
		if err := os.Remove(filepath.Join(dir, ".gitignore")); err != nil {
			t.Fatal(err)
		}
		scan() // its findings are not stored, as on a full disk
		sight := scan()
		before := map[string]*protocol.FileState{}
		for i := range sight.News {
			w.last = time.Unix(0, sight.News[i].ChangedNs)
			one := filepoint.Sight{News: sight.News[i : i+1]}
			before[sight.News[i].Path] = w.compare(one)[0].before
		}
		want := map[string]*protocol.FileState{"new.txt": nil, "secret.env": {Kind: protocol.FileUnknown, Problem: protocol.FileIgnored}}
		if diff := cmp.Diff(want, before); diff != "" {
			t.Errorf("earlier states (-want +got):\n%s", diff)
		}
	})
}
