package strictjson_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lashd/internal/strictjson"
)

type base struct {
	SessionID string `json:"sessionId,omitempty"`
}

// deal has fields that must be there, at each depth.
type deal struct {
	core
	Parts []part          `json:"parts"`
	ByKey map[string]core `json:"byKey,omitempty"`
	Next  *deal           `json:"next,omitempty"`
	Same  core            `json:"same,omitzero"`
	Count int             `json:"count"`
}

type core struct {
	ID   string          `json:"id"`
	Body json.RawMessage `json:"body"`
}

type part struct {
	Type string  `json:"type"`
	Size uint8   `json:"size,omitempty"`
	Sub  []part  `json:"sub,omitempty"`
	Next *part   `json:"next,omitempty"`
	Rate float32 `json:"rate,omitempty"`
}

type params struct {
	base
	Input  []part          `json:"input,omitempty"`
	Named  map[string]part `json:"named,omitempty"`
	ByNum  map[int]string  `json:"byNum,omitempty"`
	Raw    json.RawMessage `json:"raw,omitempty"`
	Any    any             `json:"any,omitempty"`
	At     time.Time       `json:"at,omitzero"`
	Blob   []byte          `json:"blob,omitempty"`
	Pair   [2]int          `json:"pair,omitzero"`
	Limit  *int64          `json:"limit,omitempty"`
	Flag   bool            `json:"flag,omitempty"`
	Number json.Number     `json:"number,omitempty"`
	Meta   json.RawMessage `json:"_meta,omitempty"`
	Hidden string          `json:"-"`
}

var decodes = []struct {
	in, pointer, reason string // reason "" if it is good
}{
	{`{}`, "", ""},
	{`{"sessionId":"s","input":[{"type":"a","size":255,"sub":[{"type":"b"}],"next":{"type":"c"}}]}`, "", ""},
	{`{"_x":1,"_meta":{"Z":1},"input":[{"type":"","_y":{}}]}`, "", ""},
	{`{"raw":{"Input":1,"x":[]},"any":{"Input":2},"named":{"Free":{"type":"t"}}}`, "", ""},
	{`{"at":"2026-11-21T10:00:00Z","blob":"aGk=","pair":[1,2],"limit":-9223372036854775808}`, "", ""},
	{`{"limit":null,"flag":null,"input":null,"any":null,"raw":null,"byNum":{"-3":"x"},"number":1e999}`, "", ""},
	{`[]`, "", "expected object, got array"},
	{`null`, "", "expected object, got null"},
	{`{"inptu":[]}`, "/inptu", `unknown field "inptu", did you mean "input"?`},
	{`{"Input":[]}`, "/Input", `did you mean "input"?`},
	{`{"\u0130nput":[]}`, "/İnput", `did you mean "input"?`},
	{`{"ſessionId":"x"}`, "/ſessionId", `did you mean "sessionId"?`},
	{`{"base":{}}`, "/base", `unknown field "base"`},
	{`{"Hidden":"x"}`, "/Hidden", "unknown field"},
	{`{"_Meta":1}`, "/_Meta", `did you mean "_meta"?`},
	{`{"a/b~c":1}`, "/a~1b~0c", "unknown field"},
	{`{"sessionId":5}`, "/sessionId", "expected string, got number"},
	{`{"input":[{"type":null}]}`, "/input/0/type", "expected string, got null"},
	{`{"sessionId":{}}`, "/sessionId", "expected string, got object"},
	{`{"input":{}}`, "/input", "expected array, got object"},
	{`{"input":[{"type":"x"},{"type":1}]}`, "/input/1/type", "expected string, got number"},
	{`{"input":[{"sub":[{"type":"x"},{"next":{"typ":"x"}}]}]}`, "/input/0/sub/1/next/typ", `did you mean "type"?`},
	{`{"input":[null]}`, "/input/0", "expected object, got null"},
	{`{"input":[{"size":256}]}`, "/input/0/size", "256 is out of range"},
	{`{"input":[{"size":-1}]}`, "/input/0/size", "-1 is out of range"},
	{`{"input":[{"size":1.5}]}`, "/input/0/size", "expected integer, got 1.5"},
	{`{"input":[{"size":1e2}]}`, "/input/0/size", "expected integer, got 1e2"},
	{`{"input":[{"size":"1"}]}`, "/input/0/size", "expected integer, got string"},
	{`{"input":[{"type":"x","rate":1e39}]}`, "/input/0/rate", "1e39 is out of range"},
	{`{"limit":9223372036854775808}`, "/limit", "out of range"},
	{`{"flag":1}`, "/flag", "expected boolean, got number"},
	{`{"flag":"true"}`, "/flag", "expected boolean, got string"},
	{`{"named":{"a":{"type":"x"},"b":{"Type":"y"}}}`, "/named/b/Type", `did you mean "type"?`},
	{`{"named":[]}`, "/named", "expected object, got array"},
	{`{"byNum":{"x":"y"}}`, "/byNum", "\"x\" is not a number"},
	{`{"any":[1,1e400]}`, "/any", "1e400 is out of range"},
	{`{"at":"yesterday"}`, "/at", "parsing time"},
	{`{"at":5}`, "/at", "JSON string"},
	{`{"blob":"%%%"}`, "/blob", "illegal base64"},
	{`{"blob":[1]}`, "/blob", "expected string, got array"},
	{`{"pair":[1]}`, "/pair", "expected 2 elements, got 1"},
	{`{"pair":[1,2,3]}`, "/pair", "expected 2 elements, got 3"},
	{`{"number":"x"}`, "/number", "expected number, got string"},
	{`{"input":[],"input":[]}`, "", "duplicate key"},
	{`{"raw":{"a":1,"a":1}}`, "", "duplicate key"},
	{`{} x`, "", "data after"},
}

func TestDecode(t *testing.T) {
	for _, c := range decodes {
		var got params
		err := strictjson.Decode([]byte(c.in), &got)
		if c.reason == "" {
			if err != nil {
				t.Errorf("Decode(%s) = %v, want nil", c.in, err)
			}
			continue
		}
		e, ok := errors.AsType[*strictjson.Error](err)
		if !ok || e.Pointer != c.pointer || !strings.Contains(e.Reason, c.reason) {
			t.Errorf("Decode(%s) = %v, want %s: %s", c.in, err, c.pointer, c.reason)
		}
	}
}

func TestDecodeRequiresFieldsThatAreNotOptional(t *testing.T) {
	whole := `{"id":"","body":null,"parts":null,"count":0}`
	for _, c := range []struct{ in, pointer string }{
		{whole, ""},
		{`{"id":"","body":null,"parts":[{"type":""}],"byKey":{"k":{"id":"","body":1}},"next":` + whole + `,"count":0}`, ""},
		{`{"\u0069d":"","body":null,"parts":[],"count":0}`, ""},
		{`{}`, "/id"},
		{`{"id":"","parts":[],"count":0}`, "/body"},
		{`{"count":0,"body":0,"id":""}`, "/parts"},
		{`{"id":"","body":0,"parts":[]}`, "/count"},
		{`{"ID":""}`, "/ID"},
		{`{"id":"","body":0,"parts":[{"type":""},{"size":1}],"count":0}`, "/parts/1/type"},
		{`{"id":"","body":0,"parts":[{"type":"","next":{"type":"","sub":[{}]}}],"count":0}`, "/parts/0/next/sub/0/type"},
		{`{"id":"","body":0,"parts":[],"byKey":{"a/b":{"id":""}},"count":0}`, "/byKey/a~1b/body"},
		{`{"id":"","body":0,"parts":[],"next":{"id":"","body":0,"parts":[]},"count":0}`, "/next/count"},
		{`{"id":"","body":0,"parts":[],"same":{"body":0},"count":0}`, "/same/id"},
	} {
		err := strictjson.Decode([]byte(c.in), new(deal))
		e, refused := errors.AsType[*strictjson.Error](err)
		if refused != (c.pointer != "") || refused && e.Pointer != c.pointer {
			t.Errorf("Decode(%s) = %v, want %q", c.in, err, c.pointer)
		}
	}
}

func TestDecodeWrites(t *testing.T) {
	limit := int64(-3)
	want := params{base: base{SessionID: "s"}, Input: []part{{Type: "a", Size: 2}}, Limit: &limit, Pair: [2]int{1, 2}}
	var got params
	in := `{"sessionId":"s","input":[{"type":"a","size":2}],"limit":-3,"pair":[1,2],"_later":{"x":[]}}`
	if err := strictjson.Decode([]byte(in), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(params{})); diff != "" {
		t.Errorf("Decode(%s): -want +got\n%s", in, diff)
	}
}

func TestDecodeNeedsPointer(t *testing.T) {
	for _, into := range []any{nil, params{}, (*params)(nil)} {
		if err := strictjson.Decode([]byte(`{}`), into); err == nil {
			t.Errorf("Decode into %T succeeded", into)
		}
	}
}

func FuzzStrictJSON(f *testing.F) {
	for _, c := range checks {
		if len(c.in) < 10_000 {
			f.Add([]byte(c.in))
		}
	}
	for _, c := range decodes {
		f.Add([]byte(c.in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		good := strictjson.Check(data, strictjson.Limits{}) == nil
		if good && !json.Valid(data) {
			t.Fatalf("Check accepts %q, encoding/json does not", data)
		}
		var first, second params
		if strictjson.Decode(data, &first) != nil {
			return
		}
		if !good {
			t.Fatalf("Decode accepts %q, Check does not", data)
		}
		text, err := json.Marshal(first)
		if err != nil {
			return // a time past the year 9999
		}
		if err := strictjson.Decode(text, &second); err != nil {
			t.Fatalf("decode %s, which came from %q: %v", text, data, err)
		}
		again, err := json.Marshal(second)
		if err != nil || !reflect.DeepEqual(text, again) {
			t.Fatalf("%q became %s and then %s (%v)", data, text, again, err)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	data := []byte(`{"sessionId":"s","input":[{"type":"text","size":2},{"type":"` + strings.Repeat("x", 800) + `"}],"limit":-3,"pair":[1,2]}`)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var p params
		if err := strictjson.Decode(data, &p); err != nil {
			b.Fatal(err)
		}
	}
}
