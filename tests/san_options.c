/* Linked into the sanitizers' netd, whose environment is empty: looking for leaks means to stop and trace the
 * process at its end, which no jail allows. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0:abort_on_error=1:handle_abort=0";
}
