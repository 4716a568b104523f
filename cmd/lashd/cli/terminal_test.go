package cli

import (
	"bytes"
	"slices"
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

func TestConfigErrors(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", ""},
		{"model = 'm'\napproval = 'ask'\n[[models]]\nid = 'x'\n", ""},
		{"trace = true\nmodle = 'm'\n", `line 2: unknown key "modle"; did you mean model?`},
		{"[[models]]\nname = 'a'\nbaseurl = 'x'\n", `line 3: unknown key "models.baseurl"; did you mean base_url?`},
		{"model = \n", "line 1, column 9"},
		{"model = 3\n", "line 1"},
		{"approval = 'alow'\n", "must be allow, ask or deny"},
	} {
		_, err := parseConfig([]byte(test.text))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("config %q: %v, want %q", test.text, err, test.want)
		}
	}
}

func TestCommandsDoNotGetKeys(t *testing.T) {
	c := config{KeyEnv: "LLM_AUTH", Models: []modelConfig{{KeyEnv: "OTHER"}, {}}}
	got := c.environ([]string{"PATH=/bin", "LLM_AUTH=k1", "OTHER=k2", "OTHERS=x", "EMPTY="})
	if want := []string{"PATH=/bin", "OTHERS=x", "EMPTY="}; !slices.Equal(got, want) {
		t.Errorf("commands get %q, want %q", got, want)
	}
}
