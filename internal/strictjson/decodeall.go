package strictjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Errors are the mistakes in a JSON document, in the order of the data. It is never empty. If a
// json.Unmarshaler returns Errors for its value, DecodeAll places each of them in the whole
// document.
type Errors []*Error

// Error returns the first mistake and the number of others.
func (e Errors) Error() string {
	if len(e) == 1 {
		return e[0].Error()
	}
	return fmt.Sprintf("%s (and %d more)", e[0], len(e)-1)
}

// DecodeAll is Decode that continues after a mistake, for files that people edit. It returns Errors
// with the first mistakes, at most limit. Data that is not JSON at all ends it at the first syntax
// error.
func DecodeAll(data []byte, into any, limit int) error {
	s := scanner{data: data, tokens: defaultTokens, keepGoing: true}
	whole := s.document(defaultDepth)
	var all Errors
	for _, at := range s.duplicates {
		twice := scanner{data: data, pos: at, fault: faultDuplicate}
		all = append(all, twice.error(0, 0))
	}
	if !whole {
		return first(append(all, s.error(defaultDepth, defaultTokens)), limit)
	}
	w := walker{cursor: cursor{data: data}, probe: true, limit: limit}
	w.path = w.few[:0]
	if err := w.value(reflect.TypeOf(into).Elem(), false); err != nil {
		w.kept = append(w.kept, err)
	}
	if all = append(all, w.kept...); len(all) > 0 {
		return first(all, limit)
	}
	return json.Unmarshal(data, into)
}

// first sorts mistakes by their offset and returns at most limit of them.
func first(all Errors, limit int) Errors {
	slices.SortStableFunc(all, func(a, b *Error) int { return a.Offset - b.Offset })
	return all[:min(len(all), limit)]
}
