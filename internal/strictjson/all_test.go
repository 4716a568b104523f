package strictjson_test

import (
	"errors"
	"fmt"
	"testing"

	"lashd/internal/strictjson"
)

// either is a name, or an object.
type either struct {
	Name string `json:"name"`
	Size int    `json:"size,omitempty"`
}

func (e *either) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		e.Name, _ = strictjson.Text(data)
		return nil
	}
	type plain either
	return strictjson.DecodeAll(data, (*plain)(e), 10)
}

type mistaken struct {
	ID    string         `json:"id"`
	Note  string         `json:"note"`
	Parts []part         `json:"parts,omitempty"`
	By    map[string]int `json:"by,omitempty"`
	Any   []either       `json:"any,omitempty"`
}

func TestDecodeAllFindsEveryMistake(t *testing.T) {
	for in, want := range map[string][]string{
		`{"id":"a","note":"b"}`: nil,
		`{"id":1,"note":true}`:  {"6 /id expected string, got number", "15 /note expected string, got boolean"},
		`{}`:                    {"0 /id is required", "0 /note is required"},
		`{"id":"a","note":"b","x":{"y":[1]},"parts":5}`:     {`21 /x unknown field "x"`, "43 /parts expected array, got number"},
		`{"id":"a","id":"b","note":1}`:                      {`10  duplicate key "id"`, "26 /note expected string, got number"},
		`{"id":"a","id":"b","note":1`:                       {`10  duplicate key "id"`, "27  unexpected end of JSON"},
		`{"id":"a","note":"b","by":{"k":"1","l":2,"m":[]}}`: {"31 /by/k expected integer, got string", "45 /by/m expected integer, got array"},
		`{"id":"a","note":"b","parts":[{"size":300},{"type":"x"},7]}`: {"30 /parts/0/type is required",
			"38 /parts/0/size 300 is out of range", "56 /parts/2 expected object, got number"},
		`{"id":"a","note":"b","any":["x",{"name":1,"sice":2},{"size":3},4]}`: {"40 /any/1/name expected string, got number",
			`42 /any/1/sice unknown field "sice", did you mean "size"?`, "52 /any/2/name is required", "63 /any/3 expected object, got number"},
	} {
		var got []string
		err := strictjson.DecodeAll([]byte(in), new(mistaken), 10)
		if all, ok := errors.AsType[strictjson.Errors](err); ok {
			for _, e := range all {
				got = append(got, fmt.Sprintf("%d %s %s", e.Offset, e.Pointer, e.Reason))
			}
		} else if err != nil {
			t.Errorf("%s: %v is not Errors", in, err)
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%s:\ngot  %q\nwant %q", in, got, want)
		}
	}
}

func TestDecodeAllStopsAtItsLimit(t *testing.T) {
	for limit := 1; limit < 4; limit++ {
		err := strictjson.DecodeAll([]byte(`{"a":1,"b":2,"c":3,"id":"x","id":"y"}`), new(mistaken), limit)
		if all, ok := errors.AsType[strictjson.Errors](err); !ok || len(all) != limit {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
}

func TestFind(t *testing.T) {
	data := []byte(` {"a/b": [ 1, {"c":2} ], "~": 3}`)
	for pointer, want := range map[string][2]int{
		"": {1, 1}, "/a~1b": {2, 9}, "/a~1b/0": {11, 11}, "/a~1b/1/c": {15, 19}, "/~0": {25, 30},
		"/none": {1, 1}, "/a~1b/7": {2, 9}, "/~0/deeper": {25, 30},
	} {
		if key, value := strictjson.Find(data, pointer); [2]int{key, value} != want {
			t.Errorf("%q at %d and %d, want %v", pointer, key, value, want)
		}
	}
}
