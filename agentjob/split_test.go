package agentjob

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzSplit compares with what the standard library makes of the same text.
func FuzzSplit(f *testing.F) {
	for _, seed := range append(seeds,
		` { "a" : 1 , "b":[ {"c":"]}\\\""} , -1e5,true ] , "a":null , "\u0061\"" : "x" } `, `[[],{},"",0,[1,2]]`, "{\"\xff\":\"\xff\"}", `{"ä":"ö"}`,
		`{"":""}`, `[ ]`, `{ }`, `{"a":[]}`, `{"a":1,"b":2,"a":3}`, `[{}]`, `"{}"`, `12`, `["\\","\\\\"]`,
	) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		f, isObject := splitObject(text) // no text makes it panic
		list, isArray := splitArray(text)
		if !json.Valid(text) {
			return
		}
		var object map[string]json.RawMessage
		wantObject := json.Unmarshal(text, &object) == nil && object != nil
		members := map[string]json.RawMessage{}
		for _, m := range f {
			members[m.name], _ = f.get(m.name)
		}
		if isObject != wantObject || isObject && !reflect.DeepEqual(members, object) {
			t.Errorf("object %v %q, not %v %q", isObject, f, wantObject, object)
		}
		var array []json.RawMessage
		wantArray := json.Unmarshal(text, &array) == nil && array != nil
		if isArray != wantArray || isArray && !reflect.DeepEqual(list, array) {
			t.Errorf("array %v %q, not %v %q", isArray, list, wantArray, array)
		}
	})
}

func TestPartsCantGrowIntoEachOther(t *testing.T) {
	text := []byte(`{"a":"x","b":"y"}`)
	f, ok := splitObject(text)
	if !ok {
		t.Fatal("it is an object")
	}
	a, _ := f.get("a")
	_ = append(a, "overwritten"...)
	if b, _ := f.get("b"); string(b) != `"y"` {
		t.Errorf("b is %s", b)
	}
}
