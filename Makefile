# make extension builds editors/vscode/dist/lashd.vsix; make extension BUNDLE=1 with the daemon of this platform in it.
.PHONY: extension
extension:
	scripts/extension $(if $(BUNDLE),--bundle)
