package promptcontext_test

import (
	"testing"

	"lashd/engine/builtin/promptcontext"
	"lashd/engine/plugin/plugintest"
)

func TestContract(t *testing.T) {
	plugintest.Run(t, new(promptcontext.Factory), plugintest.Config{})
}
