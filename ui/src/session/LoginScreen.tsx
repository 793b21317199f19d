import { Center, Paper, Stack, Text, Title } from '@mantine/core';
import { Logo } from '../parts/Logo';
import { LoginForm } from './LoginForm';

export function LoginScreen({ onDone }: { onDone: () => void }) {
  return (
    <Center component="main" mih="100vh" p="md">
      <Paper withBorder p="xl" radius="lg" w={400} maw="100%" shadow="sm">
        <Stack gap="lg">
          <Logo />
          <div>
            <Title order={1} size="h3">
              Sign in
            </Title>
            <Text c="dimmed" size="sm" mt={4}>
              Sign in with an API key. The scopes of your key decide what you can see and do.
            </Text>
          </div>
          <LoginForm onDone={onDone} />
        </Stack>
      </Paper>
    </Center>
  );
}
