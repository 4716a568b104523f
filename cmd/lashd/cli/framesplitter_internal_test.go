package cli

import (
	"bytes"
	"strings"
	"testing"
)

func TestSplitterPassesWholeMessages(t *testing.T) {
	one, two := `{"id":1,"method":"a"}`, `[{"id":2},{"method":"b"}]`
	for name, stream := range map[string]string{
		"lines":      one + "\n" + two + "\r\n",
		"headers":    "Content-Length: 21\r\n\r\n" + one + "content-length:25\r\nX: y\r\n\r\n" + two,
		"bare feeds": "Content-Length: 21\n\n" + one + "Content-Length: 25\n\n" + two,
	} {
		for size := 1; size <= len(stream); size++ {
			var out bytes.Buffer
			var bodies []string
			s := &splitter{out: &out, each: func(body []byte, _ bool) { bodies = append(bodies, strings.TrimSpace(string(body))) }}
			for rest := stream + "Cont"; rest != ""; {
				n := min(size, len(rest))
				s.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			if out.String() != stream || len(bodies) != 2 || bodies[0] != one || bodies[1] != two {
				t.Fatalf("%s, %d bytes at once: wrote %q with bodies %q, want %q", name, size, out.String(), bodies, stream)
			}
		}
	}
}
