cat > "$PLUGIN_DATA/start.json"
echo "The project in $CLAUDE_PROJECT_DIR has these files:"
ls
