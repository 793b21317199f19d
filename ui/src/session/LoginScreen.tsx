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
              This server knows its users by their keys. What you may see and do is what your key may.
            </Text>
          </div>
          <LoginForm onDone={onDone} />
        </Stack>
      </Paper>
    </Center>
  );
}
