case "$(cat)" in
*'"prompt":"forget'*)
	printf '{"decision":"block","reason":"Nothing is forgotten here."}'
	;;
*) echo "Answer briefly." ;;
esac
