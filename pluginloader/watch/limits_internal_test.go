package watch

import (
	"testing"

	"lashd/pluginloader/manifest"
)

func TestAsMuchIsWatchedAsAPluginMayBe(t *testing.T) {
	if maxPlugins != manifest.MaxManifests || maxEntries != manifest.MaxEntries || maxDepth != manifest.MaxDepth {
		t.Error("the limits differ from those of a plugin")
	}
}
