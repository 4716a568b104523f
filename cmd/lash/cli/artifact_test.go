package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

func TestUploadedArtifactsSurviveAKill(t *testing.T) {
	t.Run("outside/16 a durable artifact survives kill -9, and lost parts are reported", func(t *testing.T) {
		p := newPlace(t)
		id := p.session()
		part := bytes.Repeat([]byte("a part. "), 90_000/8)
		write := func(code int, upload string, n int, done bool) protocol.ArtifactWriteResult {
			t.Helper()
			params := protocol.ArtifactWriteParams{SessionID: protocol.SessionID(id), UploadID: upload, Offset: int64(n * len(part)), Bytes: part, Done: done}
			sent, err := json.Marshal(params)
			if err != nil {
				t.Fatal(err)
			}
			var r protocol.ArtifactWriteResult
			out := p.want(code, "", "", "call", "artifact/write", string(sent))
			if code == 0 {
				err = json.Unmarshal([]byte(out.out), &r)
			} else if !strings.Contains(out.err, "a restart of the daemon discards unfinished uploads") {
				t.Errorf("stderr %q", out.err)
			}
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		const parts = 12 // more than 1 MiB, so that it becomes a file
		var last protocol.ArtifactWriteResult
		for n := range parts {
			last = write(0, "whole", n, n == parts-1)
			if last.Durable != (n == parts-1) {
				t.Fatalf("part %d: %+v", n, last)
			}
		}
		if r := write(0, "open", 0, false); r.Durable {
			t.Errorf("an unfinished upload returned %+v", r)
		}
		p.kill()
		want := protocol.DigestOf(bytes.Repeat(part, parts))
		if last.Digest != want {
			t.Errorf("digest %s, want %s", last.Digest, want)
		}
		var whole []byte
		for len(whole) < parts*len(part) {
			var r protocol.ArtifactReadResult
			out := p.want(0, "", "", "call", "artifact/read", fmt.Sprintf(`{"digest":%q,"offset":%d}`, want, len(whole)))
			if err := json.Unmarshal([]byte(out.out), &r); err != nil || len(r.Bytes) == 0 {
				t.Fatal(err, len(r.Bytes))
			}
			whole = append(whole, r.Bytes...)
		}
		if protocol.DigestOf(whole) != want {
			t.Error("the artifact has other bytes")
		}
		write(1, "open", 1, true)
	})
}
