package turn

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
)

// fill sets v to any value: absent, empty and full lists, and text that JSON changes.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.IntN(3)))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		v.SetUint(uint64(r.IntN(3)))
	case reflect.Float64:
		v.SetFloat(float64(r.IntN(3)) / 3)
	case reflect.String:
		v.SetString([]string{"", "plain", "é<&>\u2028", "\xff", "\x00\""}[rare(r, 5)])
	case reflect.Pointer:
		if depth > 0 && r.IntN(2) == 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem(), depth-1)
		}
	case reflect.Slice:
		fillSlice(r, v, depth)
	case reflect.Map:
		if rare(r, 2) == 1 {
			v.Set(reflect.MakeMap(v.Type()))
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			if field.CanSet() {
				fill(r, field, depth)
			}
		}
	}
}

func fillSlice(r *rand.Rand, v reflect.Value, depth int) {
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		if rare(r, 2) == 1 {
			v.Set(reflect.ValueOf(json.RawMessage(`{"a": "<\u00e9>"}`)))
		}
		return
	}
	if depth <= 0 || r.IntN(3) == 0 {
		return
	}
	n := r.IntN(3)
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		fill(r, v.Index(i), depth-1)
	}
}

// rare is mostly 0 or 1, so that JSON leaves most values unchanged.
func rare(r *rand.Rand, n int) int {
	if r.IntN(40) > 0 {
		return r.IntN(min(n, 2)) * (n / 5)
	}
	return r.IntN(n)
}

func sameAsReread[T any](t *testing.T) {
	t.Helper()
	r, direct := rand.New(rand.NewPCG(1, 2)), 0
	rounds := 4_000
	if os.Getenv("LASHD_LONG") != "" {
		rounds = 20_000
	}
	for range rounds {
		var v T
		fill(r, reflect.ValueOf(&v).Elem(), 4)
		before, _ := json.Marshal(v)
		out := v
		if !faithful(reflect.ValueOf(&out).Elem()) {
			continue
		}
		direct++
		want, err := reread(v)
		if err != nil || !reflect.DeepEqual(out, want) {
			t.Fatalf("%T copied differs from what is read back (%v):\n%s", v, err, cmp.Diff(want, out))
		}
		if after, _ := json.Marshal(v); string(after) != string(before) {
			t.Fatalf("%T was changed", v)
		}
	}
	if direct < rounds/100 {
		t.Errorf("only %d values of %T were copied without JSON", direct, *new(T))
	}
}

func TestFaithful(t *testing.T) {
	t.Run("a copy equals the value read back from JSON", func(t *testing.T) {
		sameAsReread[protocol.Message](t)
		sameAsReread[ModelReply](t)
		sameAsReread[ToolReply](t)
		sameAsReread[Delivery](t)
		sameAsReread[Config](t)
		sameAsReread[Remembered](t)
		sameAsReread[Response](t)
	})
	t.Run("a copy shares nothing", func(t *testing.T) {
		given := Response{Checkpoint: &Delivery{Messages: []protocol.Message{{Parts: []protocol.Part{{Text: "mine"}}}}}}
		got, err := exact(given)
		if err != nil {
			t.Fatal(err)
		}
		given.Checkpoint.Messages[0].Parts[0].Text = "changed"
		if text := got.Checkpoint.Messages[0].Parts[0].Text; text != "mine" {
			t.Errorf("the copy says %q", text)
		}
	})
}
