/* Linked into copies of both programs in place of the kernel's answer: Landlock before it had scopes. */
int __wrap_landlock_abi(void);

int __wrap_landlock_abi(void)
{
	return 5;
}
