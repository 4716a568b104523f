package plugin

import "reflect"

// own returns a deep copy of v, which a hook may modify freely. Interfaces, functions and unexported fields are shared
// with the original.
func own[T any](v T) T {
	duplicate(reflect.ValueOf(&v).Elem())
	return v
}

// duplicate replaces everything that v refers to with copies, in place. v must be addressable.
func duplicate(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			fresh := reflect.New(v.Type().Elem())
			fresh.Elem().Set(v.Elem())
			duplicate(fresh.Elem())
			v.Set(fresh)
		}
	case reflect.Slice:
		if !v.IsNil() {
			duplicateSlice(v)
		}
	case reflect.Map:
		if !v.IsNil() {
			duplicateMap(v)
		}
	case reflect.Struct:
		for _, f := range v.Fields() {
			if f.CanSet() {
				duplicate(f)
			}
		}
	}
}

// duplicateSlice copies a slice, and its elements unless they are bytes.
func duplicateSlice(v reflect.Value) {
	fresh := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(fresh, v)
	if v.Type().Elem().Kind() != reflect.Uint8 {
		for i := range fresh.Len() {
			duplicate(fresh.Index(i))
		}
	}
	v.Set(fresh)
}

func duplicateMap(v reflect.Value) {
	fresh := reflect.MakeMapWithSize(v.Type(), v.Len())
	for key, value := range v.Seq2() {
		element := reflect.New(v.Type().Elem()).Elem()
		element.Set(value)
		duplicate(element)
		fresh.SetMapIndex(key, element)
	}
	v.Set(fresh)
}
