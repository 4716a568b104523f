# Wants the tests to be run before the first answer.
event=$(cat)
echo "$event" >> "$PLUGIN_DATA/stops"
case "$event" in
*'"stop_hook_active":true'*) ;;
*)
	echo "Run the tests first." >&2
	exit 2
	;;
esac
