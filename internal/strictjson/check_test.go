package strictjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"lashd/internal/strictjson"
)

var checks = []struct {
	in     string
	reason string // "" if it is good
	offset int
}{
	{`{}`, "", 0},
	{` [1, -0, 0.5, 1e400, -1.5E+3, 9007199254740993] `, "", 0},
	{"\"\u00e9\\u00e9\\ud83d\\ude00\\/\\b\"", "", 0},
	{`true`, "", 0},
	{`null`, "", 0},
	{`{"a":{"a":1},"b":{"a":1}}`, "", 0},
	{strings.Repeat("[", 64) + strings.Repeat("]", 64), "", 0},
	{``, "unexpected end of JSON", 0},
	{`  `, "unexpected end of JSON", 2},
	{`{"a":`, "unexpected end of JSON", 5},
	{`"a`, "unexpected end of JSON", 2},
	{`"a\`, "unexpected end of JSON", 3},
	{`tru`, "unexpected end of JSON", 3},
	{`-`, "unexpected end of JSON", 1},
	{`1.`, "unexpected end of JSON", 2},
	{`1e`, "unexpected end of JSON", 2},
	{`trux`, "unexpected character 'x'", 3},
	{`nul1`, "unexpected character '1'", 3},
	{`NaN`, "unexpected character 'N'", 0},
	{`Infinity`, "unexpected character 'I'", 0},
	{`+1`, "unexpected character '+'", 0},
	{`.5`, "unexpected character '.'", 0},
	{`-a`, "unexpected character 'a'", 1},
	{`1.e5`, "unexpected character 'e'", 2},
	{`01`, "must not begin with 0", 0},
	{`[-012]`, "must not begin with 0", 1},
	{`0x10`, "data after", 1},
	{`'a'`, `unexpected character '\''`, 0},
	{`[1,]`, "unexpected character ']'", 3},
	{`[,1]`, "unexpected character ','", 1},
	{`[1 2]`, "unexpected character '2'", 3},
	{`[1}`, "unexpected character '}'", 2},
	{`{"a":1,}`, "unexpected character '}'", 7},
	{`{"a" 1}`, "unexpected character '1'", 5},
	{`{a:1}`, "unexpected character 'a'", 1},
	{`{1:1}`, "unexpected character '1'", 1},
	{`// x`, "unexpected character '/'", 0},
	{`{} {}`, "data after", 3},
	{`1 2`, "data after", 2},
	{"{}\x00", "data after", 2},
	{"\xef\xbb\xbf{}", "byte order mark", 0},
	{"\"a\nb\"", "control character", 2},
	{"\"a\x00b\"", "control character", 2},
	{`"\x41"`, "unknown escape", 1},
	{`"\u12g4"`, "unknown escape", 1},
	{`"\u12`, "unknown escape", 1},
	{`"\ud800"`, "surrogate", 1},
	{`"\ud800\ud800"`, "surrogate", 1},
	{`"\ude00"`, "surrogate", 1},
	{`"\ud83dx\ude00"`, "surrogate", 1},
	{"\"\xff\"", "UTF-8", 1},
	{"\"\xc0\xaf\"", "UTF-8", 1},
	{"\"\xed\xa0\x80\"", "UTF-8", 1},
	{"\"\xf4\x90\x80\x80\"", "UTF-8", 1},
	{"{\"\xc3\":1}", "UTF-8", 2},
	{`{"a":1,"a":2}`, `duplicate key "a"`, 7},
	{`{"a":1,"\u0061":2}`, `duplicate key "a"`, 7},
	{`{"":1,"":2}`, `duplicate key ""`, 6},
	{`[{"x":{"b":1,"c":2, "b" :3}}]`, `duplicate key "b"`, 20},
	{strings.Repeat("[", 65) + strings.Repeat("]", 65), "deeper than 64", 64},
	{strings.Repeat(`{"a":`, 65) + "1" + strings.Repeat("}", 65), "deeper than 64", 320},
	{"[" + strings.Repeat("1,", 1<<18) + "1]", "more than 262144", 1<<19 - 1},
	{keys(1000, 1000), "", 0},
	{keys(1000, 3), `duplicate key "k3"`, -1},
	{keys(1000, 999), `duplicate key "k999"`, -1},
	{keys(17, 15), `duplicate key "k15"`, -1},
}

// keys is an object with n keys k0, k1..., and then one called k<last>.
func keys(n, last int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":%d,`, i, i)
	}
	return fmt.Sprintf(`{%s"k%d":0}`, &b, last)
}

func TestCheck(t *testing.T) {
	for _, c := range checks {
		err := strictjson.Check([]byte(c.in), strictjson.Limits{})
		if c.reason == "" {
			if err != nil {
				t.Errorf("Check(%s) = %v, want nil", strictjson.Quote(c.in), err)
			}
			continue
		}
		e, ok := errors.AsType[*strictjson.Error](err)
		if !ok || !strings.Contains(e.Reason, c.reason) || c.offset >= 0 && e.Offset != c.offset {
			t.Errorf("Check(%s) = %v, want %q at %d", strictjson.Quote(c.in), err, c.reason, c.offset)
		}
	}
}

func TestMembersAndElements(t *testing.T) {
	var got []string
	for k, v := range strictjson.Members([]byte(` { "a\n" : [1, {"x":"]"}] ,"b":"}" , "c" : 1.5 } `)) {
		got = append(got, fmt.Sprintf("%q=%s", k, v))
	}
	if want := `["a\n"=[1, {"x":"]"}] "b"="}" "c"=1.5]`; fmt.Sprint(got) != want {
		t.Errorf("members %v, want %v", got, want)
	}
	n := 0
	for v := range strictjson.Elements([]byte(`[ {} , [] , "a,b" , null ]`)) {
		if !json.Valid(v) {
			t.Errorf("element %q is not a value", v)
		}
		n++
	}
	if n != 4 {
		t.Errorf("%d elements, want 4", n)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"input", "turn/start", "turn/steer", "cwd", "id"}
	for word, want := range map[string]string{
		"inptu": "input", "Input": "input", "turn/strat": "turn/start", "cdw": "cwd", "xyz": "", "": "", "sessionId": "",
	} {
		if got := strictjson.Nearest(word, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	event := `{"jsonrpc":"2.0","id":17,"method":"turn/start","params":{"sessionId":"0198-7a","input":[{"type":"text","text":"` +
		strings.Repeat("say something short, please. ", 30) + `"}],"whenBusy":"queue","budget":{"tokens":1000,"usd":0.25}}}`
	deltas := `[` + strings.Repeat(`{"type":"item/delta","seq":12,"text":"hello"},`, 20) + `{}]`
	for name, doc := range map[string]string{"request": event, "tokens": deltas} {
		b.Run(name, func(b *testing.B) {
			data := []byte(doc)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if err := strictjson.Check(data, strictjson.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
